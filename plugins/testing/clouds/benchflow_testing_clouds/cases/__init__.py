"""Cases that every cloud has to pass: a plugin's tests subclass them and say what is the vendor's own.

class TestFaults(CloudFaults):
    wire = WIRE
"""

from benchflow_testing_clouds.cases.faults import CloudFaults
from benchflow_testing_clouds.cases.rollouts import CloudRollouts
from benchflow_testing_clouds.cases.wire import CloudCase, Refusal, Wire

__all__ = ["CloudCase", "CloudFaults", "CloudRollouts", "Refusal", "Wire"]
