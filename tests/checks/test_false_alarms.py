"""Files written by OpenVINO give no errors or warnings. A larger sample: python -m tests.false_alarms."""

from __future__ import annotations

from tests import false_alarms


def test_no_false_alarms():
    checked, alarms = false_alarms.run(60, 1)
    assert checked == 60
    assert alarms == []
