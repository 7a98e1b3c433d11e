"""`python -I -S <this file> FD`: the helper, talking to its owner on a socket. `… probe DIR STAGE`: a trial.
`… remove DIR`: delete a tree whose files belong to mapped ids."""

import json
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

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
