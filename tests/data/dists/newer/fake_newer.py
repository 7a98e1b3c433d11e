raise AssertionError("imported although it does not fit")
