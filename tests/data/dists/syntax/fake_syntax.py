def benchflow_sandbox(:
    pass
