"""The operating system: processors and threads that this process may use, forks, and differences between platforms."""
