"""What senders of alerts write."""
