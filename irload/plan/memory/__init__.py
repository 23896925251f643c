"""Where the values of a program lie: layouts, views and lifetimes as data, and one arena for all of them."""
