"""What the measurements share: rounds, reports, replay servers, env steps, and TF-Agents' own roles."""
