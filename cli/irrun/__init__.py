"""The command `irrun`: each command calls one function of the API and renders its result."""
