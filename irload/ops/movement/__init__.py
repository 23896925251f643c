"""Data movement: operations that rearrange, select or copy values without changing them."""
