"""One job's campaign: legs (one program over one path each), their evidence, their judgement.

A leg is run by a plain shell script beside it, so that an administrator can read and repeat it;
what it leaves behind is judged by pure functions, in the job for the second look and again after.
"""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "collective_commands": "what programs of all ranks are told",
    "commands": "what programs between pairs are told, and how hard",
    "evidence.declaration": "what the ranks saw against what was declared",
    "evidence.disturbance": "how much others on cores and rails explain",
    "evidence.error_rates": "what may be lost, and from where on it is no chance",
    "evidence.leg_folder": "what the ranks of a leg left",
    "job_end": "how a job ended",
    "judge": "what a whole job came to",
    "leg": "legs, relations, and the plan that holds them",
    "links": "what the nodes of a job are made of",
    "outcome": "what one leg came to",
    "outcomes": "what all legs of a job came to",
    "recording": "what a leg came to, as records",
    "relation": "what is to hold between legs",
    "relations.judge": "what is to hold between legs",
    "run": "ReFrame started and watched, and what the run came to",
    "second_look": "the judge inside a job",
    "script": "the shell script of a job",
}
