"""The rules of `irrun check`, a file a category. The registry discovers them."""
