"""`python -I -S <this file> KIT FD`: the helper, talking to its owner on a socket. `… KIT probe DIR STAGE`: a trial.
`… KIT remove DIR`: delete a tree whose files belong to mapped ids. KIT: the folder that holds the box kit."""

import json
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.append(sys.argv.pop(1))

from benchflow_sandbox_local.helper import server, setup, title, tree, trial

if sys.argv[1] == "probe":
    print(json.dumps(trial.run(sys.argv[2], int(sys.argv[3]))))
elif sys.argv[1] == "remove":
    setup.become_root_of_own_namespace()
    tree.remove(sys.argv[2])
else:
    owner = int(sys.argv[1])
    title.set_title("box")
    server.main(owner)
