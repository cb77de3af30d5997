"""The same numbers, sooner: specialised records and passes, which register themselves. Everything runs without them."""
