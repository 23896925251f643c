"""Memory planning: layouts, views and lifetimes as data, and one arena for all values of a program."""
