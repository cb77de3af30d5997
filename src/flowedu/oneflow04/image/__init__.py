"""Operations on images of different sizes that prepare a batch: flow.image and flow.detection."""
