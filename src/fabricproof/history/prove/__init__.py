"""What the rules of today say of a site's own nights, and what they would notice there."""
