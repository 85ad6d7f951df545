"""How relations between the legs of one job are judged, most of them in rounds."""
