"""Tools that change a model. Each is a function that takes a Model and returns a new one, so they can be combined."""

from irload.edit.add_output import add_output
from irload.edit.convert import convert
from irload.edit.embed import embed
from irload.edit.extract import extract
from irload.edit.fold import fold
from irload.edit.layout import layout
from irload.edit.rename import rename
from irload.edit.reshape import reshape
from irload.edit.set_batch import set_batch
from irload.edit.strip import strip

__all__ = ["add_output", "convert", "embed", "extract", "fold", "layout", "rename", "reshape", "set_batch", "strip"]
