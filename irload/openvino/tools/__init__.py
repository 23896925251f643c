"""`openvino.tools`: the converter, which irload does not have."""
