"""What a trigger asks for, as values that are trusted from then on. Pure."""
