"""The command `irrun`: a thin skin over irload. One command is one call of the API and one rendering."""
