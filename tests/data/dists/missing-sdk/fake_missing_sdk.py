import a_vendor_sdk_that_nobody_has  # noqa: F401
