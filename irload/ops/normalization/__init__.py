"""Normalization, by given or computed statistics, or over a neighbourhood."""
