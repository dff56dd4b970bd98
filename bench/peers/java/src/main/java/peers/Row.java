package peers;

record Row(String name, String unit) {
	double better(double a, double b) {
		return unit.contains("/") ? Math.max(a, b) : Math.min(a, b);
	}
}
