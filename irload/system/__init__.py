"""The operating system: processors and threads this process may use, and differences between platforms."""
