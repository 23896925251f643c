"""Writing IR: a Model as model.xml and model.bin that OpenVINO loads (`save`), and repairs of a file (`patch`)."""
