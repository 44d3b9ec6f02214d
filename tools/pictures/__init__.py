"""The pictures of the documentation that show the product at work."""
