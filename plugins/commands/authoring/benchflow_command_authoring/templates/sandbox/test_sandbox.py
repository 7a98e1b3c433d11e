"""The conformance suite. Remove an `xfail` when your sandbox can do what it names."""

import pytest
from benchflow_testing_kit import SandboxConformance, xfail

NO_WALL = "a folder is not a wall"
NO_LAYERS = "a folder has no paths of its own to install layers at"


class TestSandbox(SandboxConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    test_files_of_one_box_are_not_visible_in_another = xfail(reason=NO_WALL)
    test_files_of_the_host_are_not_changed = xfail(reason=NO_WALL)
    test_processes_of_one_box_are_not_visible_in_another = xfail(reason=NO_WALL)
    test_processes_of_the_host_are_not_visible = xfail(reason=NO_WALL)
    test_two_boxes_cannot_reach_each_other = xfail(reason=NO_WALL)
    test_host_ports_cannot_be_reached = xfail(reason=NO_WALL)
    test_host_server_is_reached_only_where_it_is_exposed = xfail(reason=NO_WALL)
    test_layer_files_and_commands = xfail(reason=NO_LAYERS)
    test_layer_is_read_only_and_shared_by_nobody = xfail(reason=NO_LAYERS)
    test_equal_layers_are_built_once = xfail(reason=NO_LAYERS)
    test_failed_layer_is_an_error_every_time = xfail(reason=NO_LAYERS)
    test_cancelled_prepare_can_be_repeated = xfail(reason=NO_LAYERS)
