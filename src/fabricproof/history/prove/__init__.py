"""What the rules of today say of a site's own nights, and what they would notice there."""

from __future__ import annotations

from fabricproof.history.prove.model import SiteProof, proof_lines, proof_record
from fabricproof.history.prove.site import prove_site

__all__ = ["SiteProof", "proof_lines", "proof_record", "prove_site"]
