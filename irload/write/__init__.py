"""Writes IR: a Model as model.xml and model.bin that OpenVINO loads (`save`), and corrections of a file (`patch`)."""
