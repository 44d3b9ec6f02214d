"""What makes and checks files of this repository; nothing of it is shipped."""
