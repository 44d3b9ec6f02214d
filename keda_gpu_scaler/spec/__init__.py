"""What a trigger asks for, as validated values. Pure."""
