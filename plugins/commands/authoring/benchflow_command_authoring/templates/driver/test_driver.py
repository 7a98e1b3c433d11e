"""The conformance suite, and the number of tries."""

import pytest
from benchflow_testing_kit import DriverConformance, RecordedEpisode

from {{module}}.loop import drive_loop


class TestDriver(DriverConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    async def test_it_stops_when_the_tests_pass(self) -> None:
        for passes, expected in ((True, 1), (False, 4)):
            episode = RecordedEpisode(passes=passes)
            await drive_loop(episode, tries=4, reminder="again")
            assert len(episode.prompts) == expected
