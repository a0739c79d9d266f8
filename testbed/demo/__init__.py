"""What a newcomer watches: a live cluster with work on it, and the agent beside it.

`show` is the play, `script` what happens to the cluster while it runs, `news` and `ending` what is told of it.
"""
