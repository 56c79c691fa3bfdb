"""What can go wrong when a program is run, as exceptions."""


class ProgramError(ValueError):
    """A program that contradicts itself: its text, its mesh and its values do not agree."""


class InputError(TypeError, ValueError):
    """An argument that the program cannot take: wrong count, shape, dtype or key type."""


class RuntimeMeshError(ValueError):
    """Devices that do not make up the mesh of the program."""
