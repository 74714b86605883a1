"""What was grown, as pictures and as one HTML page: charts, the drawing of a network, the report."""
