"use strict";
(() => {
  // Rows that are shown at first, and that "show more" adds.
  const ROWS = 100;
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const made = (tag, text, properties = {}) =>
    Object.assign(document.createElement(tag), { textContent: text ?? "", ...properties });

  // Numbers as people read them: three digits.
  const digits = (value) => String(Number(value.toPrecision(3)));
  const scaled = (value, units) => {
    const size = Math.abs(value);
    const [name, factor] = units.find(([, least]) => size >= least) ?? units[units.length - 1];
    return `${value === 0 ? 0 : digits(value / factor)} ${name}`;
  };
  const SECONDS = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9], ["ps", 1e-12]];
  const BYTES = ["PiB", "TiB", "GiB", "MiB", "KiB"].map((name, i) => [name, 1024 ** (5 - i)]);
  const shown = {
    text: (value) => value,
    number: (value) => digits(value),
    ratio: (value) => value.toFixed(2),
    seconds: (value) => (value === 0 ? "0 s" : scaled(value, SECONDS)),
    bytes: (value) => scaled(value, [...BYTES, ["B", 1]]),
  };
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  // Bokeh draws on a canvas, which knows nothing of style sheets.
  const views = new Map();
  const paint = (plot) => {
    const style = getComputedStyle(root);
    const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
    for (const axis of [...plot.left, ...plot.below, ...plot.above]) {
      if ("major_label_text_color" in axis.properties)
        axis.setv({
          major_label_text_color: ink, axis_label_text_color: ink, axis_line_color: line,
          major_tick_line_color: line, minor_tick_line_color: null,
        });
      if ("label_text_color" in axis.properties) axis.setv({ label_text_color: ink });
    }
    for (const grid of plot.center)
      if ("grid_line_color" in grid.properties) grid.setv({ grid_line_color: line });
    plot.setv({ outline_line_color: line });
  };

  const draw = async (name, entry) => {
    const target = document.getElementById(`figure-${name}`);
    const manager = await Bokeh.embed.embed_item(entry.item, target.id);
    const plot = manager.roots[0].model;
    views.set(name, plot);
    paint(plot);
    target.dataset.drawn = "yes";
  };
  const home = new Map();
  const zoom = (name, factor, shift) => {
    const plot = views.get(name);
    if (!plot) return;
    const range = plot.x_range;
    if (!home.has(name)) home.set(name, [range.start, range.end]);
    const [least, most] = home.get(name);
    const width = Math.min((range.end - range.start) * factor, most - least);
    const middle = (range.start + range.end) / 2 + shift * width;
    const start = Math.max(least, Math.min(middle - width / 2, most - width));
    range.setv({ start, end: start + width });
  };
  const KEYS = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25], 0: [Infinity, 0] };

  const setTheme = (name) => {
    if (name) root.dataset.theme = name;
    const button = document.getElementById("theme");
    button.textContent = isDark() ? "light" : "dark";
    button.setAttribute("aria-pressed", String(isDark()));
    button.setAttribute("aria-label", `switch to ${button.textContent}`);
    for (const plot of views.values()) paint(plot);
  };

  // How a tensor is cut: the two dimensions with most parts, and who holds each.
  const tip = document.getElementById("tip");
  const tiles = ([stage, shape, axes], mesh) => {
    const sizes = new Map(mesh.axes);
    const parts = shape.map((_, dim) => (axes[dim] ?? []).reduce((n, axis) => n * sizes.get(axis), 1));
    const held = new Map();
    mesh.devices.forEach((device, position) => {
      const at = new Map();
      for (const [axis, size] of [...mesh.axes].reverse()) {
        at.set(axis, position % size);
        position = Math.floor(position / size);
      }
      const tile = shape.map((_, dim) => (axes[dim] ?? []).reduce((n, axis) => n * sizes.get(axis) + at.get(axis), 0));
      const key = tile.join(",");
      held.set(key, [...(held.get(key) ?? []), device]);
    });
    return { parts, held };
  };
  const SVG = "http://www.w3.org/2000/svg";
  const svg = (tag, attributes, text) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    return element;
  };
  const range = (devices) => {
    const isRun = devices.every((device, i) => device === devices[0] + i);
    if (devices.length > 2 && isRun) return `${devices[0]} to ${devices[devices.length - 1]}`;
    return devices.length > 6 ? `${devices.slice(0, 5).join(", ")} … (${devices.length})` : devices.join(", ");
  };
  const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];
  const picture = (tensor, mesh) => {
    const { parts, held } = tiles(tensor, mesh);
    const split = parts.map((n, dim) => [n, dim]).filter(([n]) => n > 1);
    const [down, across] = split.length > 1 ? split.slice(0, 2).map(([, d]) => d)
      : split.length && split[0][1] === 0 && parts.length > 1 ? [split[0][1], -1] : [-1, split.length ? split[0][1] : -1];
    const rows = Math.min(down < 0 ? 1 : parts[down], 16), columns = Math.min(across < 0 ? 1 : parts[across], 16);
    const [width, height] = [320 / columns, Math.min(140 / rows, 40)];
    const drawing = svg("svg", { viewBox: `0 0 320 ${rows * height}`, width: 320, role: "img" });
    drawing.setAttribute("aria-label", `${held.size} parts`);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        const tile = parts.map((_, dim) => (dim === down ? row : dim === across ? column : 0));
        const devices = held.get(tile.join(",")) ?? [];
        const fill = COLOURS[(row * columns + column) % COLOURS.length];
        drawing.append(svg("rect", { x: column * width + 1, y: row * height + 1, width: width - 2, height: height - 2, fill, "fill-opacity": 0.55 }));
        if (width > 24 && height > 13)
          drawing.append(svg("text", { x: (column + 0.5) * width, y: (row + 0.5) * height + 4, "text-anchor": "middle", "font-size": 11, fill: "currentColor" }, range(devices)));
      }
    const first = [...held.values()][0] ?? [];
    return { drawing, parts: held.size, copies: first.length };
  };
  const pointAt = (row, where) => {
    const { table, index, prefix } = row.source;
    const tensor = table.tensors[index];
    const mesh = data.stages[prefix][tensor[0]];
    const values = table.rows[index];
    const { drawing, parts, copies } = picture(tensor, mesh);
    const lines = table.columns.map(([head, kind], i) => made("div", `${head}: ${shown[kind](values[i])}`));
    const devices = mesh.devices;
    lines.push(made("div", `devices: ${range(devices)}; ${parts} parts, each on ${copies} of ${devices.length}`));
    tip.replaceChildren(...lines, drawing);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(where.x + 12, innerWidth - box.width - 4))}px`;
    tip.style.top = `${where.y + 16 + box.height > innerHeight ? Math.max(4, where.y - box.height - 12) : where.y + 16}px`;
  };
  const hideTip = () => { tip.hidden = true; };

  const fill = (name, table, element) => {
    const prefix = Object.keys(data.stages).filter((one) => name.startsWith(one)).sort((a, b) => b.length - a.length)[0] ?? "";
    const state = { words: [], sort: -1, sign: 1, most: ROWS };
    // Made when it is first searched: a page opens before.
    let haystack = null;
    const texts = (row) => row.filter((cell) => typeof cell === "string").join("\n").toLowerCase();
    const [head, body] = [element.querySelector("thead"), element.querySelector("tbody")];
    const [count, more] = [element.querySelector("output"), element.querySelector("[data-more]")];
    const found = () => {
      if (state.words.length) haystack ??= table.rows.map(texts);
      const order = table.rows.map((_, i) => i).filter((i) => state.words.every((word) => haystack[i].includes(word)));
      if (state.sort >= 0)
        order.sort((a, b) => {
          const [x, y] = [table.rows[a][state.sort], table.rows[b][state.sort]];
          if (x === y) return a - b;
          if (x === null || y === null) return x === null ? 1 : -1;
          return state.sign * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y);
        });
      return order;
    };
    const line = (index) => {
      const row = made("tr");
      table.columns.forEach(([, kind], i) => {
        const value = table.rows[index][i];
        row.append(made("td", value === null ? "" : shown[kind](value), { className: kind === "text" ? "" : "number" }));
      });
      if (table.tensors.length) {
        row.tabIndex = 0;
        row.source = { table, index, prefix };
        row.addEventListener("mousemove", (event) => pointAt(row, { x: event.clientX, y: event.clientY }));
        row.addEventListener("mouseleave", hideTip);
        // A finger and the Tab key point as a mouse does.
        row.addEventListener("focus", () => {
          const box = row.getBoundingClientRect();
          pointAt(row, { x: box.left, y: box.bottom - 10 });
        });
        row.addEventListener("blur", hideTip);
      }
      return row;
    };
    const render = () => {
      const order = found();
      body.replaceChildren(...order.slice(0, state.most).map(line));
      count.textContent = `${order.length} of ${table.rows.length} rows`;
      more.hidden = order.length <= state.most;
      all("th", head).forEach((cell, i) => {
        cell.setAttribute("aria-sort", i !== state.sort ? "none" : state.sign > 0 ? "ascending" : "descending");
      });
    };
    const titles = made("tr");
    table.columns.forEach(([text, kind], i) => {
      const cell = made("th", "", { scope: "col", className: kind === "text" ? "" : "number" });
      const button = made("button", text, { type: "button", title: "sort" });
      button.addEventListener("click", () => {
        // What is a number is asked for by its largest.
        state.sign = state.sort === i ? -state.sign : kind === "text" ? 1 : -1;
        state.sort = i;
        render();
      });
      cell.append(button);
      titles.append(cell);
    });
    head.append(titles);
    element.querySelector("input").addEventListener("input", (event) => {
      state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      state.most = ROWS;
      render();
    });
    more.addEventListener("click", () => { state.most += 10 * ROWS; render(); });
    render();
  };

  let data = null;
  const unpack = async () => {
    const element = document.getElementById("data");
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    element.remove();
    return new Response(stream).json();
  };
  const start = async () => {
    setTheme(null);
    data = await unpack();
    for (const element of all("[data-table]")) fill(element.dataset.table, data.tables[element.dataset.table], element);
    // A picture is drawn when it comes near: the page opens at once.
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        draw(target.dataset.figure, data.figures[target.dataset.figure]);
      }
    }, { rootMargin: "600px" });
    all("[data-figure]").forEach((element) => watcher.observe(element));
    root.dataset.ready = "yes";
  };

  document.getElementById("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(null));
  all("[data-choices]").forEach((element) => element.addEventListener("change", () => {
    const name = element.dataset.choices;
    const source = views.get(name)?.document.get_model_by_name("samples");
    if (source) source.data = data.figures[name].sources[Number(element.value)];
  }));
  all(".plot").forEach((element) => element.addEventListener("keydown", (event) => {
    const key = KEYS[event.key];
    if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(element.parentElement.dataset.figure, ...key);
  }));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    if (event.key !== "/" || event.target.matches("input")) return;
    event.preventDefault();
    all('[data-search$="operators"]').at(-1).focus();
  });
  start();
})();
