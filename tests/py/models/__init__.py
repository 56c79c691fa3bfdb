"""Small train steps, written as an ordinary user would, in flax linen, flax nnx, haiku, equinox.

Every module has ``make(...) -> TrainCase``, with sizes, the optimiser and ``with_gradients``
(gradients among the metrics) as keyword arguments.
"""
