#!/bin/sh
# SSH_ASKPASS, SUDO_ASKPASS and GIT_ASKPASS of commands: whoever asks for a password gets none, and the output says why.
echo "agent: no password: commands have no terminal. Use a key or a credential helper, or let the user run it with !" >&2
exit 1
