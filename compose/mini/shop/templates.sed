# Changes of the dashboard's first page, applied when the image is built: see office.py.
s/{% trans "Latest Orders (last 24 hours)" %}/Orders by Month/
s/{{ item.end_time|time }}/{{ item.end_time|date:"M" }}/
s/{{ total_orders_last_day }}<\/span>{% trans "Total Orders" %}/{{ total_orders }}<\/span>{% trans "Total Orders" %}/
s/Orders - Last 24 Hours/Orders - Latest Day/
s/<li><span>{{ y_value|currency }}<\/span><\/li>/<li><span>${{ y_value|floatformat:"0g" }}<\/span><\/li>/
