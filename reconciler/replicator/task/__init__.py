"""One Spark task in one round: it joins all parts, reports status and obeys commands."""
