"""One job's campaign: legs (one program over one path each), their evidence, their judgement.

A leg is run by a plain shell script beside it, so that an administrator can read and repeat it;
what it leaves behind is judged by pure functions, in the job for the second look and again after.
"""
