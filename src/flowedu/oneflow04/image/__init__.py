"""flow.image and flow.detection: pictures of many sizes on their way to a batch."""
