"""The tests that use files, names, consoles and processes, which every system has to pass."""

PARTS = (
    "tests/read/test_files.py",
    "tests/read/test_constants.py",
    "tests/write/test_save.py",
    "tests/test_models.py",
    "tests/cli/test_run.py",
    "tests/cli/test_inspect.py",
    "tests/checks/test_files.py",
    "tests/batch/test_predictor.py",
)
