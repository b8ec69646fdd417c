"""Attacks from the inside, each a function of `facts` that returns whether it worked; raising means it did not.

Every file here runs as it stands in two places: in a session, where nothing may work, and in a plain process, where
everything should, as a control that the attack is real. So each imports the standard library only. What an attack needs
to know is in `facts` (attacks.py): planted secrets, a listener, a victim.
"""
