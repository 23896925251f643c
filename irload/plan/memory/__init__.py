"""Memory planning: the layout, alias and lifetime of each value, and one arena for all values of a program."""
