"""flow.nn of OneFlow 0.4: functions of blobs."""
