"""What is made once for a signature of a parallelised function."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from stablehlo_alpa.api.call_planner import CallPlanner
from stablehlo_alpa.api.following import Following
from stablehlo_alpa.api.methods import FollowParallel, Method
from stablehlo_alpa.api.rivals import Rivals
from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.api.sizes import check_sizes
from stablehlo_alpa.api.stages import Compiled, Lowered
from stablehlo_alpa.errors import StablehloAlpaError, TraceError
from stablehlo_alpa.frontend import Function
from stablehlo_alpa.frontend.signature import context
from stablehlo_alpa.planning import Plan

_log = logging.getLogger(__name__)


class Prepared:
    """Plan, lowered and compiled function of a signature, each made when it is first asked for.

    All are asked for in the context of jax that belongs to the signature, by one thread at a time.

    Attributes:
        args: positional arguments, types in place of arrays.
        kwargs: keyword arguments, likewise.
    """

    def __init__(
        self,
        function: Function,
        settings: Settings,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        nearest: Callable[[], Plan | None] = lambda: None,
    ) -> None:
        """Makes nothing yet.

        Args:
            function: what is called.
            settings: how, bound to the inputs of the call.
            args: positional arguments, types in place of arrays.
            kwargs: keyword arguments, likewise.
            nearest: finds a plan for other sizes, whose strategies are tried first.
        """
        self.args, self.kwargs = args, kwargs
        self._function, self._settings, self._nearest = function, settings, nearest
        self._context = context()

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan; touches no devices."""
        planner = self._planner()
        return self._finished(self._near(planner) or planner.search())

    @property
    def is_planned(self) -> bool:
        """Whether `plan` was made."""
        return "plan" in self.__dict__

    def _planner(self) -> CallPlanner:
        function, settings = self._function, self._settings
        return CallPlanner(function, settings, self.args, self.kwargs, self._following)

    def _near(self, planner: CallPlanner) -> Plan | None:
        """The plan by the strategies of the nearest one; None where that may lose too much."""
        most = self._settings.reuse_gap
        source = self._nearest() if most else None
        if source is None:
            return None
        try:
            return planner.transfer(source, most)
        except (StablehloAlpaError, ValueError) as error:
            _log.info("%s: searched, %s", self._function.name, error)
            return None

    def _finished(self, made: Plan) -> Plan:
        """A plan that knows where it is from."""
        method = self._settings.method
        rivals = Rivals(self._by, method, self._function.name, self._context)
        brief = method.brief()
        return dataclasses.replace(made, method=brief, rivals=rivals, transfers=self._in_sizes)

    def _by(self, method: Method) -> Plan:
        """The plan by another method."""
        settings = dataclasses.replace(self._settings, method=method)
        return Prepared(self._function, settings, self.args, self.kwargs).plan

    def _in_sizes(self, source: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan:
        """A plan of this signature for arguments in other sizes; see `Plan.transfer`."""
        if context() != self._context:
            raise TraceError(
                f"the plan of {self._function.name} was made in another context of jax (number "
                "types, PRNG implementation, context mesh): transfer it there"
            )
        types = check_sizes(self._function, source.program, (self.args, self.kwargs), args, kwargs)
        other = Prepared(self._function, self._settings, *types)
        made = other._planner().transfer(source)
        assert made is not None
        return other._finished(made)

    @functools.cached_property
    def _following(self) -> Following | None:
        """The stages of a function that follows inputs on several meshes."""
        method = self._settings.method
        if not isinstance(method, FollowParallel) or not method.meshes:
            return None
        return Following.of(method, self._function, self.args, self.kwargs)

    @functools.cached_property
    def lowered(self) -> Lowered:
        """The plan, bound to devices."""
        plan, settings = self.plan, self._settings
        devices = None if self._following is None else self._following.devices
        return Lowered(plan, settings.find_target(devices), settings.method.backend)

    @property
    def compiled(self) -> Compiled:
        """The function on its devices."""
        if not self.is_planned:
            # Said before minutes are spent on a plan that cannot be run.
            self._settings.check_devices()
        return self.lowered.compile()

    @property
    def is_compiled(self) -> bool:
        """Whether `compiled` was asked for, here or of `lowered`."""
        return "lowered" in self.__dict__ and self.lowered.is_compiled

    def argument(self, argument: int | str) -> Any:
        """An argument by position, or by the name that it is passed by; None of none."""
        if isinstance(argument, str):
            return self.kwargs.get(argument)
        return self.args[argument] if 0 <= argument < len(self.args) else None
