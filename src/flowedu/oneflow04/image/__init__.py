"""flow.image and flow.detection: operations on images of different sizes that prepare a batch."""
