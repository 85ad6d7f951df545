"""Why a call of Spack fails, one function for each reason: a case in, an error out, or None."""
