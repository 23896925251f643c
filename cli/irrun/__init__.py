"""The command `irrun`: each command is one call of the API and one rendering of what it returns."""
