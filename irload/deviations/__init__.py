"""Lists the differences between OpenVINO and its specification, and emulates some of them."""
