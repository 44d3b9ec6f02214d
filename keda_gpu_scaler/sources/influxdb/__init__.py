"""An InfluxDB 1.x as a source."""
