"""Lowering: converts a graph to a program that any back end can compile. One file per family, and a table of all."""
